/**
 * The policy of a page that runs and loads only files of the issuer. It talks to the issuer and to `others`. It is shown in no frame, sends
 * no form by itself, and writes no HTML from text (Trusted Types).
 */
export const pagePolicy = (...others: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    ["connect-src 'self'", ...others].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
