# Where the Debian package and what `make install` installs are tried: what they ask for is there, so that nothing is fetched.
# systemd reads units, users and folders in there; it does not run as the first process.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends systemd man-db bash-completion \
 && rm -rf /var/lib/apt/lists/*
