export function singleFile(): string | undefined
