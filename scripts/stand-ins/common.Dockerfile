# What all stand-ins have in common: the host's certificates and package indexes, so that pip and npm work in
# containers of a machine whose way out has its own certificate. Made by scripts/setup; never shipped.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
# Every image that is made on a stand-in has it, too: such an image is for this machine alone.
LABEL coding-agent.stand-in=true
# A path of its own: installing ca-certificates writes the usual one again.
COPY host-ca-bundle.crt /usr/local/share/host-ca-bundle.crt
RUN echo force-unsafe-io > /etc/dpkg/dpkg.cfg.d/unsafe-io
ENV PIP_CERT=/usr/local/share/host-ca-bundle.crt \
    REQUESTS_CA_BUNDLE=/usr/local/share/host-ca-bundle.crt \
    SSL_CERT_FILE=/usr/local/share/host-ca-bundle.crt \
    CURL_CA_BUNDLE=/usr/local/share/host-ca-bundle.crt \
    GIT_SSL_CAINFO=/usr/local/share/host-ca-bundle.crt \
    NODE_EXTRA_CA_CERTS=/usr/local/share/host-ca-bundle.crt
