import type { Delivery, DeliveryError, Webhook } from '@presign/client';

const ERRORS: Readonly<Record<DeliveryError, string>> = {
  http_status: 'the endpoint refused it',
  timeout: 'the endpoint did not answer in time',
  unreachable: 'the endpoint could not be reached',
  address_not_public: 'its address is not public, so nothing was sent',
  secret_unreadable: 'the issuer could not decrypt its secret: ask the operator about ENCRYPTION_KEYS',
  endpoint_disabled: 'the endpoint was disabled before',
};

const times = (attempts: number): string => (attempts === 1 ? 'once' : `${attempts} times`);

/** Says whether a delivery arrived, and why not. */
export function deliveryInWords({
  status,
  attempts,
  last_status: code,
  last_error: error,
}: Delivery): string {
  const answered = code === null ? '' : ` (status ${code})`;
  if (status === 'delivered')
    return attempts === 1 ? `Delivered${answered}.` : `Delivered at attempt ${attempts}${answered}.`;
  if (error === null) return 'Not sent yet.';
  const why = `${ERRORS[error] ?? error}${answered}`;
  return status === 'failed'
    ? `Given up after it was tried ${times(attempts)}: ${why}.`
    : `Tried ${times(attempts)}: ${why}.`;
}

/** Why an endpoint receives nothing. Undefined: it is enabled. */
export function disabledInWords({
  status,
  disabled_reason: reason,
}: Pick<Webhook, 'status' | 'disabled_reason'>) {
  if (status === 'enabled') return undefined;
  if (reason === 'gone') return 'It answered 410, which asks for no more events.';
  return reason === 'failing' ? 'Every attempt failed for days.' : 'It was disabled.';
}
