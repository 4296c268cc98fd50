/** A request as Node has read it. */
type NodeRequest = { readonly httpVersion: string; readonly rawHeaders: readonly string[] };

/**
 * Says why a proxy in front of a service may have read the request line or the Host of a request differently.
 * @returns undefined when all readers agree
 */
export function ambiguousRequest({ httpVersion, rawHeaders }: NodeRequest): string | undefined {
  // Node reads any version, and the services speak only these (RFC 9110 §15.6.6).
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return 'HTTP: only HTTP/1.1 and HTTP/1.0 are supported.';
  // RFC 9112 §3.2: a request with more than one Host is refused, because a proxy may have read the other one.
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && /^host$/i.test(name));
  return hosts.length > 1 ? 'Host: the header stands twice.' : undefined;
}
