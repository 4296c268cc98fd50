/** A figure with its noun: "1 second", "20 seconds". */
export const count = (figure: number, noun: string): string => `${figure} ${noun}${figure === 1 ? '' : 's'}`;

/** An amount with its dollars, as people mistake one for the other: "5 microdollars ($0.000005)". */
export const microdollars = (amount: number): string =>
  `${count(amount, 'microdollar')} ($${(amount / 1e6).toFixed(6).replace(/0{1,4}$/, '')})`;

/** How much is left: "1 microdollar ($0.000001) is left". */
export const moneyLeft = (amount: number): string =>
  `${microdollars(amount)} ${amount === 1 ? 'is' : 'are'} left`;
