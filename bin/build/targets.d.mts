/** This machine's target, whether or not there is one of that name. */
export function hostTarget(): string

export function executableName(name: string, target: string): string
