import { PresignError } from '@presign/client';
import { createContext, type RefObject } from 'preact';
import { useContext, useLayoutEffect, useRef } from 'preact/hooks';

/** The error of a form, and the function that a field calls when it shows the error. */
type Problem = { readonly error: Error | null; readonly onShown: (error: Error) => void };

export const Problem = createContext<Problem>({ error: null, onShown: () => {} });

/** Whether a refusal names a field, or a part of its value. */
const isAbout = (error: Error | null, name: string): error is PresignError =>
  error instanceof PresignError &&
  error.param !== undefined &&
  error.param.startsWith(name) &&
  /^($|[.[])/.test(error.param.slice(name.length));

/**
 * The message of the form's error, if the error is about this field. The field then gets the focus.
 * @param param the name of the field in the API
 */
export function useProblem<E extends HTMLElement>(
  param: string,
): { readonly message: string | undefined; readonly field: RefObject<E> } {
  const { error, onShown } = useContext(Problem);
  const field = useRef<E>(null);
  const own = isAbout(error, param) ? error : undefined;
  useLayoutEffect(() => {
    if (!own || !field.current) return;
    onShown(own);
    for (
      let fold = field.current.closest('details');
      fold;
      fold = fold.parentElement?.closest('details') ?? null
    )
      fold.open = true;
    field.current.focus();
  }, [own]);
  return { message: own?.message, field };
}
