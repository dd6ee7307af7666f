/** The path of the program as a single file: what PLANTS_BIN names, else what was built; undefined when nothing was. */
export function singleFile(): string | undefined
