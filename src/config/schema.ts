import * as z from 'zod/mini'
import { isLoginAddress } from '../stores/address.js'
import { type Scope, settingOf, settingsIn } from './table.js'

const storeSchema = z.looseObject({ address: z.string(), ...valuesIn('store') })
const schema = z.looseObject({
  version: z.literal(1),
  ...valuesIn('user'),
  stores: z.optional(z.record(z.string(), storeSchema)),
  tokens: z.optional(z.record(z.string(), z.looseObject({ token: z.string(), savedAt: z.string() }))),
})

function valuesIn(scope: Scope) {
  return Object.fromEntries(settingsIn(scope).map((name) => [name, z.optional(settingOf(name).isSwitch ? z.boolean() : z.string())]))
}

/** Why a value is not a settings file: a phrase for each problem. */
export function problemsOf(value: unknown): string[] {
  const parsed = schema.safeParse(value, { jitless: true })
  return parsed.success ? [] : parsed.error.issues.map(describe)
}

/** Names the key and the rule, but never the value: it may be a token. */
function describe(issue: z.core.$ZodIssue): string {
  const [first, second = '', ...others] = issue.path.map(String)
  const isHidden = first === 'tokens' && second !== '' && !isLoginAddress(second) // it may be a token in the wrong place
  const key = isHidden ? 'an entry of tokens' : [first, second, ...others].filter(Boolean).join('.')
  const rule =
    issue.code === 'invalid_type' ? (words[issue.expected] ?? issue.expected) : issue.code === 'invalid_value' ? '1' : 'something else'
  return `${key === '' ? 'the whole' : key} must be ${rule}`
}

const words: Record<string, string> = { string: 'a text', boolean: 'true or false', object: 'an object', record: 'an object' }
