/*
 * The schema of the settings file. It gives the types of saved settings, and a sentence for each
 * invalid value. `isSavedSettings` accepts the same values without zod, which takes long to load:
 * a test compares the two.
 */
import * as z from 'zod/mini'
import { isObject } from '../plant/json.js'
import { isLoginAddress } from '../stores/address.js'
import { getSetting, listSettings, type Scope, type SettingName } from './setting-table.js'
import { isStoreName } from './store-name.js'

const stringSchema = z.string({ error: 'must be a string' })
const booleanSchema = z.boolean({ error: 'must be true or false' })
const notAnObject = 'must be an object'

// Unknown keys are accepted everywhere, and stay in the file: a newer version may have written
// them.
const storeSchema = z.object(
  { address: stringSchema, ...buildShape('store') },
  { error: notAnObject },
)

const tokenSchema = z.object({ token: stringSchema, savedAt: stringSchema }, { error: notAnObject })

/** The settings file. Stores are keyed by name, tokens by the address of their store. */
export const settingsSchema = z.object(
  {
    version: z.literal(1, { error: 'must be 1' }),
    ...buildShape('user'),
    stores: buildSection(storeSchema),
    tokens: buildSection(tokenSchema),
  },
  { error: notAnObject },
)

export type SavedSettings = z.infer<typeof settingsSchema>
export type SavedStore = z.infer<typeof storeSchema>

type Shape = { [name in SettingName]: z.ZodMiniExactOptional<z.ZodMiniType<string | boolean>> }

/** Builds the schema of the settings that can be saved for all stores, or with one store. */
function buildShape(scope: Scope): Shape {
  // The loop adds the settings of the scope. All others stay unknown keys.
  const shape = {} as Shape
  for (const name of listSettings(scope))
    shape[name] = z.exactOptional(getSetting(name).isSwitch ? booleanSchema : stringSchema)
  return shape
}

/**
 * Builds the schema of `stores` or `tokens`. The record of zod ignores the key `__proto__`, so that
 * this key is rejected before.
 */
function buildSection<Entry extends z.ZodMiniType>(entry: Entry) {
  const isRecord = (value: unknown) => isObject(value) && !Object.hasOwn(value, '__proto__')
  const record = z.custom<Record<string, unknown>>(isRecord, {
    error: ({ input }) => (isObject(input) ? 'must not have the key __proto__' : notAnObject),
  })
  return z.exactOptional(z.pipe(record, z.record(z.string(), entry)))
}

/** Returns a sentence for each invalid value, without the value, which may be a token. */
export function findSettingsProblems(value: unknown): string[] {
  // The schema is used once, so zod need not compile a function for it.
  const { error: schemaError } = settingsSchema.safeParse(value, { jitless: true })
  const issues = schemaError?.issues ?? []
  // A file of another version may have another shape, so only its version is reported.
  const versionIssues = issues.filter(({ path }) => path[0] === 'version')
  const reportedIssues = versionIssues.length > 0 ? versionIssues : issues
  return reportedIssues.map(({ path, message }) => `${formatPath(path)} ${message}`)
}

/**
 * Formats a path such as `stores.garden.timeout`. A key that is neither the name of a store nor the
 * address of a service may be a token that was pasted in the wrong place: it becomes `***`.
 */
function formatPath([section, key, ...fields]: readonly PropertyKey[]): string {
  if (section === undefined) return 'the document'
  if (typeof key !== 'string') return String(section)
  const isValidKey = section === 'stores' ? isStoreName(key) : isLoginAddress(key)
  return [section, isValidKey ? key : '***', ...fields].map(String).join('.')
}
