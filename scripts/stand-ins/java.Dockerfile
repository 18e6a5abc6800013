# Stands in for the official Maven image: the distribution's JDK and Maven.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates default-jdk-headless maven \
 && rm -rf /var/lib/apt/lists/*
