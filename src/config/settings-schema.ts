import * as z from 'zod/mini'
import { isLoginAddress } from '../stores/common/address.js'
import { type Scope, savedType, settingsIn } from './setting-table.js'

const settings = (scope: Scope) =>
  Object.fromEntries(
    settingsIn(scope).map((name) => [name, z.optional(savedType(name) === 'boolean' ? z.boolean() : z.string())]),
  )

/** Unknown keys are kept. */
const schema = z.looseObject({
  version: z.literal(1),
  ...settings('user'),
  stores: z.optional(z.record(z.string(), z.looseObject({ address: z.string(), ...settings('store') }))),
  tokens: z.optional(z.record(z.string(), z.looseObject({ token: z.string(), savedAt: z.string() }))),
})

const rules: Readonly<Record<string, string>> = { string: 'a string', boolean: 'true or false' }

/** The key and the rule of each, but never the value, nor a key of `tokens` that is no address: it may be a token. */
export function problemsOf(value: unknown): string[] {
  const issues = schema.safeParse(value, { jitless: true }).error?.issues ?? []
  return issues.map((issue) => {
    const keys = issue.path.map(String)
    if (keys[0] === 'tokens' && keys[1] !== undefined && !isLoginAddress(keys[1])) keys[1] = '***'
    const rule = issue.code === 'invalid_type' ? (rules[issue.expected] ?? 'an object') : '1'
    return `${keys.join('.') || 'the document'} must be ${rule}`
  })
}
