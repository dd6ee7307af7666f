import * as z from 'zod/mini'
import { isObject } from '../plant/json.js'
import { isLoginAddress } from '../stores/address.js'
import { getSetting, listSettings, type Scope, type SettingName } from './setting-table.js'
import { isStoreName } from './store-name.js'

const string = z.string({ error: 'must be a string' })
const boolean = z.boolean({ error: 'must be true or false' })
const error = 'must be an object'

/** Unknown keys are accepted everywhere, and stay in the file. */
const storeSchema = z.object({ address: string, ...buildShape('store') }, { error })

const tokenSchema = z.object({ token: string, savedAt: string }, { error })

/** The settings file. Stores are keyed by name, tokens by the address of their store. */
export const settingsSchema = z.object(
  {
    version: z.literal(1, { error: 'must be 1' }),
    ...buildShape('user'),
    stores: buildSection(storeSchema),
    tokens: buildSection(tokenSchema),
  },
  { error },
)

export type SavedSettings = z.infer<typeof settingsSchema>
export type SavedStore = z.infer<typeof storeSchema>

type Shape = { [name in SettingName]: z.ZodMiniExactOptional<z.ZodMiniType<string | boolean>> }

/** The settings that can be saved for all stores, or with one. */
function buildShape(scope: Scope): Shape {
  const shape = {} as Shape // which has those in the scope, and knows no other
  for (const name of listSettings(scope))
    shape[name] = z.exactOptional(getSetting(name).isSwitch ? boolean : string)
  return shape
}

/** A record of zod passes over the key `__proto__`, with whatever it holds. */
function buildSection<Entry extends z.ZodMiniType>(entry: Entry) {
  const isRecord = (value: unknown) => isObject(value) && !Object.hasOwn(value, '__proto__')
  const record = z.custom<Record<string, unknown>>(isRecord, {
    error: ({ input }) => (isObject(input) ? 'must not have the key __proto__' : error),
  })
  return z.exactOptional(z.pipe(record, z.record(z.string(), entry)))
}

/** A sentence for each invalid value, which it never contains: it may be a token. */
export function findSettingsProblems(value: unknown): string[] {
  const { error: failure } = settingsSchema.safeParse(value, { jitless: true })
  const issues = failure?.issues ?? []
  // A file of another version may have any other shape.
  const ofVersion = issues.filter(({ path }) => path[0] === 'version')
  const shown = ofVersion.length > 0 ? ofVersion : issues
  return shown.map(({ path, message }) => `${formatPath(path)} ${message}`)
}

/** A key that is wrong is not named: it may be a token, or an address with its password. */
function formatPath([section, key, ...fields]: readonly PropertyKey[]): string {
  if (section === undefined) return 'the document'
  if (typeof key !== 'string') return String(section)
  const isKey = section === 'stores' ? isStoreName(key) : isLoginAddress(key)
  return [section, isKey ? key : '***', ...fields].map(String).join('.')
}
