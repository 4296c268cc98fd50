/** Associated data of a sealed credential: it opens only as the record it was sealed for. */
export const credentialContext = (accountId: string, credentialId: string): string =>
  `credential ${accountId} ${credentialId}`;
