//! Images: those of the configuration, and those that are made of containers.

mod ensure; // pulls or builds missing images
mod prepared; // images with executor and workspace
mod set_up; // set-ups kept as images
