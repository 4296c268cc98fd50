/** The part of a call's end that this file reads. */
type Ended = { readonly is: string; readonly status?: number; readonly isBounded?: boolean };

/**
 * Whether a call certainly never left this gateway, and its holder did not cause that. It is always refunded in full. A call that its
 * holder ended, or that failed in this gateway, was not sent either. But a holder could repeat such a call endlessly, so the bound on
 * refunds applies to it.
 */
export function surelyUnsent(sent: Ended): boolean {
  switch (sent.is) {
    case 'unsent':
      return sent.isBounded !== true;
    // No token for the upstream. With a status, the upstream itself refused the credential.
    case 'unauthorized':
      return sent.status === undefined;
    case 'unsealable':
    case 'unavailable':
      return true;
    default:
      return false;
  }
}
