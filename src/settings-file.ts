import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod/mini'
import { PlantsError, systemCode } from './errors.js'
import type { Io } from './io.js'

const schema = z.looseObject({
  version: z.literal(1),
  tokens: z.record(z.string(), z.looseObject({ token: z.string(), savedAt: z.string() })),
})

/** What is saved for a user. Tokens stand under the name of the address that they are for. */
export type SavedSettings = z.infer<typeof schema>

/** Reads the settings file; without one, nothing is saved. Throws `malformed` for a file that is not as it should be. */
export async function readSettings(io: Io): Promise<SavedSettings> {
  const path = join(await folderOf(io), fileName)
  try {
    return parse(readFileSync(path, 'utf8'), path)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { version: 1, tokens: {} }
    if (code === undefined) throw error
    const hint = code === 'EISDIR' ? 'It is a folder. Move it away' : 'Change its permissions'
    throw new PlantsError('malformed', `Could not read the settings in ${path}: ${code}`, { hint, cause: error })
  }
}

/** Changes the settings file, which is replaced as a whole; for its owner alone. Throws `unwritable` when that fails. */
export async function changeSettings(io: Io, change: (settings: SavedSettings) => SavedSettings): Promise<void> {
  const folder = await folderOf(io)
  const path = join(folder, fileName)
  const settings = change(await readSettings(io))
  try {
    makeFolder(folder)
    const { default: Conf } = await import('conf')
    const conf = new Conf({ cwd: folder, configName: 'settings', configFileMode: 0o600, accessPropertiesByDotNotation: false })
    conf.store = settings
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    throw new PlantsError('unwritable', `The settings could not be saved in ${path}: ${code}`, {
      hint: 'Use PLANTS_TOKEN instead, or choose another folder with PLANTS_CONFIG_DIR',
      cause: error,
    })
  }
}

const fileName = 'settings.json'

async function folderOf({ env, resolvePath, configFolder }: Io): Promise<string> {
  return env['PLANTS_CONFIG_DIR'] ? resolvePath(env['PLANTS_CONFIG_DIR']) : configFolder()
}

/** conf would make it readable for others. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
}

function parse(text: string, path: string): SavedSettings {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new PlantsError('malformed', `The settings in ${path} are not JSON`, { hint: 'Mend the file, or move it away', cause: error })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const hint = 'Mend the file, move it away, or update plants if a newer version wrote it'
  throw new PlantsError('malformed', `The settings in ${path} are not as plants saved them`, { hint })
}
