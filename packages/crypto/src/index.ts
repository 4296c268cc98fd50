export { apiKeyHint, generateApiKey, hashApiKey, looksLikeApiKey, sameSecret } from './api-key.ts';
export { EncryptionKeys, generateEncryptionKey, KeyError, readEncryptionKeys } from './encryption-keys.ts';
export { checkMac, deriveBytes, mac } from './mac.ts';
export {
  reseal,
  SealError,
  type SealErrorCode,
  seal,
  sealDeterministic,
  sealedWith,
  unseal,
} from './seal.ts';
export {
  MAX_TOKEN_CHARS,
  signMessage,
  signToken,
  type TokenRefusal,
  type VerifiedMessage,
  type VerifiedToken,
  verifyMessage,
  verifyToken,
} from './token.ts';
export {
  generateSigningKey,
  type PublicKeys,
  paserkId,
  readPublicKeys,
  readSigningKey,
  SigningKey,
} from './token-keys.ts';
