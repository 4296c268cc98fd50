/**
 * Headers of an answer that must not come from an upstream, in lower case. `*` at the end stands for any characters. No entry of an
 * allow-list may match one. The first group makes a browser send something, to whom the upstream says, or changes how it
 * treats the gateway's host: the fields that it acts on in IANA's registry, in the specifications of W3C and WICG, and in
 * Chrome's and Firefox' sources (2026-11). A report has the URL of the answer, which is a secret.
 */
const NEVER_RETURNED = [
  // Reports, and the policies whose violations are reported.
  ...['content-security-policy*', 'x-content-security-policy*', 'x-webkit-csp*', 'permissions-policy*'],
  ...['feature-policy*', 'document-policy*', 'require-document-policy', 'integrity-policy*'],
  ...['connection-allowlist*', 'cross-origin-*', 'origin-agent-cluster', 'expect-ct', 'expect-staple'],
  ...[
    'public-key-pins*',
    'report-to',
    'reporting-endpoints',
    'nel',
    'network-error-logging',
    'x-xss-protection',
  ],
  ...['attribution-reporting-*', 'observe-browsing-topics', 'timing-allow-origin', 'tk'],
  // Requests for other resources.
  ...['link', 'refresh', 'sourcemap', 'x-sourcemap', 'speculation-rules', 'supports-loading-mode'],
  ...['x-dns-prefetch-control', 'content-base', 'content-location', 'default-style', 'ping-*'],
  ...['service-worker*', 'no-vary-search', 'use-as-dictionary', 'origin-trial', 'activate-storage-access'],
  // State of the browser for this host, and fields of its next requests.
  ...[
    'set-cookie*',
    'clear-site-data',
    'strict-transport-security',
    'alt-svc',
    'alternate-protocol',
    'alternates',
  ],
  ...['accept-ch*', 'critical-ch', 'content-dpr', 'set-login', 'idp-*', 'sec-*', 'secure-session-*'],
  ...['www-authenticate', 'proxy-authenticate', 'authentication-info', 'proxy-authentication-info'],
  ...['x-frame-options', 'x-robots-tag', 'x-permitted-cross-domain-policies', 'p3p', 'window-target'],
  // Commands to a proxy in front of the gateway: nginx, Apache, lighttpd, LiteSpeed, Perlbal, Varnish and CDNs.
  ...[
    'x-accel-*',
    'x-sendfile',
    'x-lighttpd-*',
    'x-litespeed-*',
    'x-reproxy-*',
    'x-forwarded-*',
    'forwarded',
    'via',
  ],
  ...['surrogate-*', 'x-original-url', 'x-rewrite-url', 'cdn-loop'],
  // The gateway's own, and those of one hop (RFC 9110 §7.6.1).
  ...['access-control-*', 'referrer-policy', 'x-content-type-options', 'x-presign-*'],
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  // Every policy may have a form that only reports.
  '*-report-only',
] as const;

/**
 * The header of `NEVER_RETURNED` that an entry of an allow-list would let pass.
 * @param entry in lower case: a name, or the beginning of names and `*`
 */
export const actedOnBy = (entry: string): string | undefined =>
  NEVER_RETURNED.find((never) => {
    if (never.startsWith('*')) return entry.endsWith(never.slice(1));
    const [start, name] = [entry.replace(/\*$/, ''), never.replace(/\*$/, '')];
    return (
      start === name ||
      (never.endsWith('*') && start.startsWith(name)) ||
      (entry.endsWith('*') && name.startsWith(start))
    );
  });
