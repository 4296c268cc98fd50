export {
  BlockedAddressError,
  guardedDispatcher,
  isReserved,
  type PrivateUpstreams,
} from './guard-address.ts';
