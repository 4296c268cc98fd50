# The offline provider alone, for trying a deployment: docker build -f infra/docker/sandbox.Dockerfile -t presign-sandbox .
FROM node:26-bookworm-slim AS build
WORKDIR /src
COPY . .
# The same step in every image, so that it runs once for all of them.
RUN --mount=type=cache,target=/pnpm/store npx -y pnpm@12 install --frozen-lockfile --store-dir /pnpm/store \
  --filter '@presign/issuer...' --filter '@presign/gateway...' --filter '@presign/local...' --filter '@presign/console...'
RUN node_modules/.bin/esbuild infra/local/src/sandbox/main.ts \
  --bundle --platform=node --target=node20 --format=esm --outfile=/src/dist/sandbox.mjs

FROM node:26-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=build /src/dist dist
USER node
EXPOSE 8789
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8789/v1/models').then(() => process.exit(0), () => process.exit(1))"]
CMD ["node", "dist/sandbox.mjs"]
