import { writeResult } from '../../output/output.js'
import { visible } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { parseText } from '../../platform/values.js'
import { restoreStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import type { RestoreFlags } from './copies-spec.js'

export async function restore(text: string, flags: RestoreFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const file = io.resolvePath(parseText('file', text))
  const { name } = settings.store
  const options = { ...settings.opening, force: flags.force === true, at: new Date(io.time()) }
  const { plants, kept } = await restoreStore(settings.store, file, options)
  const what = `${plants} ${plants === 1n ? 'plant' : 'plants'}`
  const rest = kept === undefined ? '' : `; what was there is kept in ${visible(kept)}`
  await writeResult(io, settings, { file, store: name, plants, kept }, `Restored ${what} from ${visible(file)} to ${visible(name)}${rest}`)
}
