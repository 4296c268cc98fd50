import { useState } from 'preact/hooks';
import { presign } from '../../api/api.ts';
import { saveText } from '../../api/save.ts';
import { type UsageAsked, usageFields } from '../../data/usage.ts';
import { Failed } from './answer.tsx';

type DownloadProps = { readonly label: string; readonly file: string; readonly asked: UsageAsked };

/** Saves sums as CSV, all rows of them. */
export function Download({ label, file, asked }: DownloadProps) {
  const [error, setError] = useState<Error>();
  const save = async () => {
    try {
      setError(undefined);
      saveText(file, await presign.getUsage({ ...usageFields(asked), format: 'csv' }));
    } catch (cause) {
      setError(cause as Error);
    }
  };
  return (
    <>
      <button type="button" onClick={save}>
        {label}
      </button>
      {error && <Failed error={error} />}
    </>
  );
}
