/**
 * Makes the page of the benchmarks.
 *
 * @param page the text of docs/benchmarks.md: what is between its markers is replaced
 * @param figures by their names, as bench/figures.json has them
 * @returns the new text of the page, and the charts by the names of their files
 */
export function render(page: string, figures: object): { page: string; charts: Record<string, string> }
