import type { Input } from '@presign/client';
import { useQuery } from '@tanstack/preact-query';
import type { Range } from '../data/format/range.ts';
import { presign } from './api.ts';
import { usePages } from './pages.ts';
import { type Filters, LIVE_MS } from './queries.ts';

export const useApiKey = (id: string) =>
  useQuery({
    queryKey: ['api-key', id],
    queryFn: () => presign.getApiKey({ id }),
    refetchInterval: LIVE_MS,
  });

export const useApiKeys = () => usePages(['api-keys'], (at) => presign.listApiKeys(at), LIVE_MS);

export const useVirtualKey = (id: string) =>
  useQuery({
    queryKey: ['virtual-key', id],
    queryFn: () => presign.getVirtualKey({ id }),
    refetchInterval: LIVE_MS,
  });

export const useVirtualKeys = () => usePages(['virtual-keys'], (at) => presign.listVirtualKeys(at), LIVE_MS);

export const useWebhook = (id: string) =>
  useQuery({
    queryKey: ['webhook', id],
    queryFn: () => presign.getWebhook({ id }),
    refetchInterval: LIVE_MS,
  });

export const useWebhooks = () => usePages(['webhooks'], (at) => presign.listWebhooks(at), LIVE_MS);

export const useDeliveries = (id: string, filters: Filters) =>
  usePages(
    ['deliveries', id, filters],
    (at) => presign.listDeliveries({ id, ...filters, ...at } as Input<'listDeliveries'>),
    LIVE_MS,
  );

/** The changes within a range of time, newest first. */
export const useAudit = (filters: Filters, range: Range, isLive: boolean) =>
  usePages(
    ['audit', filters, isLive ? range.from : range],
    (at) =>
      presign.listAudit({
        ...{ ...filters, ...at, from: range.from, ...(!isLive && { to: range.to }) },
        format: 'json',
      } as Input<'listAudit'> & { format: 'json' }),
    isLive ? LIVE_MS : undefined,
  );
