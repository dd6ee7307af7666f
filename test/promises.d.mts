export function promises(page?: string): { rule: string; tests: string[]; wrongKeys: string[] }[]
