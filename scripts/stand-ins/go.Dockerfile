# Stands in for the official Go image: the distribution's Go.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates gcc golang-go libc6-dev \
 && rm -rf /var/lib/apt/lists/*
