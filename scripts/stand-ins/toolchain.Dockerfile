# Where the sources are compiled in a test, with a Rust toolchain that is handed in: what docs/install.md asks for, and no more.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
