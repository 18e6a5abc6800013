//! Images: present, pulled or built.
