import type { Names } from './fact.ts';

/**
 * Headers of an answer that must not come from an upstream, in lower case. `*` at an end stands for any characters. No entry of an
 * allow-list may match one. They make a browser send something, to whom the upstream says, or change how it treats the gateway's host.
 */

/** Reports, and the policies whose violations are reported. A report has the URL of the answer, which is a secret. */
export const REPORTS: Names = {
  source:
    "IANA's registry of HTTP fields, the specifications of W3C and WICG, and the sources of Chrome and Firefox",
  date: '2026-11-26',
  names: [
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
  ],
};

/** Requests for other resources. */
export const REQUESTS: Names = {
  source:
    "IANA's registry of HTTP fields, the specifications of W3C and WICG, and the sources of Chrome and Firefox",
  date: '2026-11-26',
  names: [
    ...['link', 'refresh', 'sourcemap', 'x-sourcemap', 'speculation-rules', 'supports-loading-mode'],
    ...['x-dns-prefetch-control', 'content-base', 'content-location', 'default-style', 'ping-*'],
    ...['service-worker*', 'no-vary-search', 'use-as-dictionary', 'origin-trial', 'activate-storage-access'],
  ],
};

/** State of the browser for this host, and fields of its next requests. */
export const STATE: Names = {
  source:
    "IANA's registry of HTTP fields, the specifications of W3C and WICG, and the sources of Chrome and Firefox",
  date: '2026-11-26',
  names: [
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
  ],
};

/** Commands to a proxy in front of the gateway. */
export const PROXIES: Names = {
  source: 'the documentation of nginx, Apache, lighttpd, LiteSpeed, Perlbal and Varnish, and of CDNs',
  date: '2026-11-26',
  names: [
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
  ],
};

/** The gateway's own, and those of one hop. */
export const OWN: Names = {
  source: 'RFC 9110 §7.6.1; https://fetch.spec.whatwg.org/#http-cors-protocol',
  date: '2026-11-26',
  names: [
    ...['access-control-*', 'referrer-policy', 'x-content-type-options', 'x-presign-*'],
    ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ],
};

/** Every policy may have a form that only reports. */
export const REPORT_ONLY: Names = {
  source:
    "IANA's registry of HTTP fields, the specifications of W3C and WICG, and the sources of Chrome and Firefox",
  date: '2026-11-26',
  names: ['*-report-only'],
};
