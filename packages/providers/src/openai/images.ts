import { textOf } from '../bounds/read-count.ts';

/**
 * Most input tokens of one image, for the models whose documentation lets it be worked out
 * (https://platform.openai.com/docs/guides/images-vision#calculating-costs). Models counted in tiles scale an image
 * to at most 768 × 2,048 pixels, 8 tiles; those counted in patches to at most 1,536 patches, times a factor.
 * Later models have other budgets (`detail: original`) and factors that the page does not state: none is given,
 * and their images count as the whole context window.
 */
const MOST: ReadonlyMap<string, number> = new Map([
  ['gpt-4o', 85 + 8 * 170],
  ['gpt-4o-mini', 2_833 + 8 * 5_667],
  // Described both as tiles (1,445) and as patches without a factor: the larger.
  ['gpt-4.1', 1_536],
  ['gpt-4.1-mini', Math.ceil(1_536 * 1.62)],
  ['gpt-4.1-nano', Math.ceil(1_536 * 2.46)],
  ['o1', 75 + 8 * 150],
  ['o3', 75 + 8 * 150],
  ['o4-mini', Math.ceil(1_536 * 1.72)],
  ['gpt-5', 70 + 8 * 140],
  ['gpt-5-mini', Math.ceil(1_536 * 1.62)],
  ['gpt-5-nano', Math.ceil(1_536 * 2.46)],
]);

/** Most tokens of one image; undefined where the model's maximum is not published. */
export const openaiImageTokens = (model: unknown): number | undefined =>
  MOST.get(textOf(model).replace(/-\d{4}-\d{2}-\d{2}$/, ''));
