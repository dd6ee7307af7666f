export function findExecutable(): string | undefined
