/** How sending a call ended, as far as this page reads it. */
type Ended = { readonly is: string; readonly status?: number; readonly isBounded?: boolean };

/**
 * Whether a call surely never left this gateway, through no act of its holder. It gets everything back, however often. A call
 * that its holder ended, or that failed in this gateway, was not sent either. But a holder could repeat it without end, so
 * the bound of give-backs holds for it.
 */
export function surelyUnsent(sent: Ended): boolean {
  switch (sent.is) {
    case 'unsent':
      return sent.isBounded !== true;
    // No token for the upstream. With a status it was the upstream itself that refused the credential.
    case 'unauthorized':
      return sent.status === undefined;
    case 'unsealable':
    case 'unavailable':
      return true;
    default:
      return false;
  }
}
