import * as z from 'zod/mini'

const text = z.optional(z.string())
const storeSchema = z.looseObject({
  address: z.string(),
  timeout: text,
  'ca-cert': text,
  'allow-http': z.optional(z.boolean()),
  'token-command': text,
})
const schema = z.looseObject({
  version: z.literal(1),
  store: text,
  output: text,
  timeout: text,
  'ca-cert': text,
  stores: z.optional(z.record(z.string(), storeSchema)),
  tokens: z.optional(z.record(z.string(), z.looseObject({ token: z.string(), savedAt: z.string() }))),
})

/** What is saved for a user. Stores stand under their names, tokens under the address that they are for. */
export type SavedSettings = z.infer<typeof schema>
/** A store that has a name, and what belongs to it. */
export type SavedStore = z.infer<typeof storeSchema>

/** What is wrong with a value that should be what is saved for a user: a phrase for each place. */
export function problemsOf(value: unknown): string[] {
  const parsed = schema.safeParse(value, { jitless: true })
  return parsed.success ? [] : parsed.error.issues.map(describe)
}

/** Names the key and the rule, but never the value: it may be a token. */
function describe(issue: z.core.$ZodIssue): string {
  const [first, second = '', ...others] = issue.path.map(String)
  const isHidden = first === 'tokens' && second !== '' && !/^(https?|unix):/.test(second) // it may be a token in the wrong place
  const key = isHidden ? 'an entry of tokens' : [first, second, ...others].filter(Boolean).join('.')
  const rule =
    issue.code === 'invalid_type' ? (words[issue.expected] ?? issue.expected) : issue.code === 'invalid_value' ? '1' : 'something else'
  return `${key === '' ? 'the whole' : key} must be ${rule}`
}

const words: Record<string, string> = { string: 'a text', boolean: 'true or false', object: 'an object', record: 'an object' }
