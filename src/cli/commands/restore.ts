import { writeResult } from '../../output/output.js'
import { escapeControlChars } from '../../platform/escape.js'
import { parseText } from '../../platform/values.js'
import { restoreStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { defineCommand, yesOption } from '../define-command.js'

export const restore = defineCommand({
  name: 'restore',
  description:
    'Replace what is in the store by a backup. What was there is kept in a file beside it. Others may use the store meanwhile, and see it change at once.',
  arguments: [{ name: '<file>', description: 'a backup of plants backup', values: 'file', parse: parseText }],
  options: [yesOption('replace the plants that are in the store')],
  examples: ['plants restore plants.bak --store ./new.db', 'plants restore plants.bak --yes'],
  async run({ args: [path], flags }, io) {
    const settings = await resolveSettings(flags, io)
    const file = io.resolvePath(path)
    const { name } = settings.store
    const options = { ...settings.storeOptions, force: flags.yes === true, at: new Date(io.time()) }
    const { plants, kept } = await restoreStore(settings.store, file, options)
    const rest = kept === undefined ? '' : `; what was there is kept in ${escapeControlChars(kept)}`
    const sentence = `Restored ${plants} ${plants === 1n ? 'plant' : 'plants'} from ${escapeControlChars(file)} to ${escapeControlChars(name)}${rest}`
    await writeResult(io, settings, { file, store: name, plants, kept }, sentence)
  },
})
