import * as z from 'zod/mini'
import { isObject } from '../plant/json.js'
import { isLoginAddress } from '../stores/address.js'
import { getSetting, listSettings, type Scope, type SettingName } from './setting-table.js'
import { isStoreName } from './store-name.js'

const stringSchema = z.string({ error: 'must be a string' })
const booleanSchema = z.boolean({ error: 'must be true or false' })
const notAnObject = 'must be an object'

/** Unknown keys are accepted everywhere, and stay in the file. */
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
  const shape = {} as Shape // the settings outside of the scope stay unknown keys
  for (const name of listSettings(scope))
    shape[name] = z.exactOptional(getSetting(name).isSwitch ? booleanSchema : stringSchema)
  return shape
}

/** Builds the schema of `stores` or `tokens`. zod's own record would ignore the key `__proto__`. */
function buildSection<Entry extends z.ZodMiniType>(entry: Entry) {
  const isRecord = (value: unknown) => isObject(value) && !Object.hasOwn(value, '__proto__')
  const record = z.custom<Record<string, unknown>>(isRecord, {
    error: ({ input }) => (isObject(input) ? 'must not have the key __proto__' : notAnObject),
  })
  return z.exactOptional(z.pipe(record, z.record(z.string(), entry)))
}

/** Returns a sentence for each invalid value, without the value, which may be a token. */
export function findSettingsProblems(value: unknown): string[] {
  const { error: failure } = settingsSchema.safeParse(value, { jitless: true })
  const issues = failure?.issues ?? []
  // A file of another version may have another shape, so only its version is reported.
  const ofVersion = issues.filter(({ path }) => path[0] === 'version')
  const shown = ofVersion.length > 0 ? ofVersion : issues
  return shown.map(({ path, message }) => `${formatPath(path)} ${message}`)
}

/**
 * Formats a path such as `stores.garden.timeout`. An invalid key may be a secret: it becomes `***`.
 */
function formatPath([section, key, ...fields]: readonly PropertyKey[]): string {
  if (section === undefined) return 'the document'
  if (typeof key !== 'string') return String(section)
  const isKey = section === 'stores' ? isStoreName(key) : isLoginAddress(key)
  return [section, isKey ? key : '***', ...fields].map(String).join('.')
}
