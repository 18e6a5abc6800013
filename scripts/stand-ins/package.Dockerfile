# Where the Debian package is installed in its test: what it asks for is there, so that nothing is fetched.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends systemd-standalone-sysusers systemd-standalone-tmpfiles man-db bash-completion \
 && rm -rf /var/lib/apt/lists/*
