/** A text as it is written, but for the backslash in front of `${`, which TypeScript needs and shells must not see. */
export function script({ raw }: TemplateStringsArray): string {
  return raw.join('').replaceAll('\\${', '${')
}
