/** Associated data of a sealed credential: it opens only as the record it was sealed for. */
export const credentialContext = (accountId: string, credentialId: string): string =>
  `credential ${accountId} ${credentialId}`;

/** The same for the signing secret of a webhook endpoint. */
export const webhookContext = (accountId: string, webhookId: string): string =>
  `webhook ${accountId} ${webhookId}`;

/** Associated data of the tokens that a credential's refresh token led to: they never open as the credential. */
export const oauthTokensContext = (accountId: string, credentialId: string): string =>
  `${credentialContext(accountId, credentialId)} oauth`;
