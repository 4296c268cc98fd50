# The issuer: docker build -f infra/docker/issuer.Dockerfile -t presign-issuer .
FROM node:26-bookworm-slim AS build
WORKDIR /src
COPY . .
# The same step in every image, so that it runs once for all of them.
RUN --mount=type=cache,target=/pnpm/store npx -y pnpm@12 install --frozen-lockfile --store-dir /pnpm/store \
  --filter '@presign/issuer...' --filter '@presign/gateway...' --filter '@presign/local...' --filter '@presign/console...'
RUN cd apps/issuer && node ../../infra/docker/bundle.mjs
RUN cd apps/console && node_modules/.bin/tsx build/main.ts ../issuer/dist/console-files
RUN node packages/client/build/main.mjs apps/issuer/dist/client-files

FROM node:26-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=build /src/apps/issuer/dist dist
# Nothing is written: run it with a read-only file system.
USER node
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ISSUER_PORT || 8787}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]
