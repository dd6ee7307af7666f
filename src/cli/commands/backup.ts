import { writeResult } from '../../output/output.js'
import { progressLine } from '../../output/progress.js'
import { plantCount } from '../../plant/plant.js'
import { escapeControlChars } from '../../platform/escape.js'
import { targetOf } from '../../platform/files.js'
import { parseText } from '../../platform/values.js'
import { backUpStore, noStore } from '../../stores/registry.js'
import type { ProgressReport } from '../../stores/store.js'
import { resolveSettings } from '../context.js'
import { defineCommand } from '../define-command.js'

export const backup = defineCommand({
  name: 'backup',
  description:
    'Copy the store, as it is at this moment, into a file, which is checked before it takes its place. Others may use the store meanwhile.',
  arguments: [{ name: '<file>', description: 'where to; an older backup there is replaced', values: 'file', parse: parseText }],
  examples: ['plants backup plants.bak', 'plants backup "plants-$(date +%F).bak" --store ./garden.db'],
  async run({ args: [path], flags }, io) {
    const settings = await resolveSettings(flags, io)
    const file = io.resolvePath(path)
    const { name } = settings.store
    const progress = progressLine(io, settings.showsProgress)
    const options = {
      ...settings.storeOptions,
      targetOf: (other: string) => targetOf(other, io),
      onProgress: (report: ProgressReport) => progress.show(() => report),
    }
    const copy = await backUpStore(settings.store, file, options).finally(progress.clear)
    if (!copy) throw noStore(settings.store)
    const { plants, bytes } = copy
    const sentence = `Backed up ${plantCount(plants)} from ${escapeControlChars(name)} to ${escapeControlChars(file)} (${sizeOf(bytes)})`
    await writeResult(io, settings, { file, plants, bytes }, sentence)
  },
})

/** A size for people: `40 KiB`, `1.5 GiB`. */
function sizeOf(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  const step = Math.min(Math.max(Math.floor(Math.log2(bytes) / 10), 1), units.length)
  const amount = bytes / 1024 ** step
  return `${amount < 10 ? Math.round(amount * 10) / 10 : Math.round(amount)} ${units[step - 1]}`
}
