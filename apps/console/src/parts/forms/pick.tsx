import { useState } from 'preact/hooks';
import { useUsers, useValues } from '../../api/names.ts';
import type { Dimension } from '../../data/usage.ts';
import { Field } from './form.tsx';

type PickProps = { readonly label: string; readonly by: Dimension; readonly value: string | undefined };

/** A field that suggests values of calls. It reads them when it gets the focus. Other values can be typed. */
export function Pick({ label, by, value }: PickProps) {
  const [isEntered, setEntered] = useState(false);
  const { data: suggested = [] } = useValues(by, isEntered);
  return (
    <Field label={label} name={by} value={value} suggested={suggested} onFocus={() => setEntered(true)} />
  );
}

/** The same for users, of whom there may be more than a list contains. */
export function PickUser({ value }: { readonly value: string | undefined }) {
  const [isEntered, setEntered] = useState(false);
  const [typed, setTyped] = useState('');
  const suggested = useUsers(typed, isEntered);
  return (
    <Field
      label="User"
      name="external_user"
      value={value}
      suggested={suggested}
      onFocus={() => setEntered(true)}
      onTyped={setTyped}
    />
  );
}
