import { notFound, readable, styleFor, writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import type { NewPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { type GlobalFlags, parseId } from '../flags.js'
import type { Settings } from '../settings.js'

export async function get(text: string, flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const id = parseId('id', text)
  const store = await openExistingStore(settings.store, settings.opening)
  try {
    const plant = await store?.get(id)
    if (!plant) throw notFound(id, settings, store !== undefined)
    await writeAnswer(io, settings.output === 'json' ? `${toJson({ ...plant })}\n` : await card(plant, settings, io), 'Run it again')
  } finally {
    await store?.close()
  }
}

async function card({ id, name, tag }: NewPlant, settings: Settings, io: Io): Promise<string> {
  const style = await styleFor(settings.colors(io.stdout))
  const lines = [`${style.faint('id')}    ${id}`, `${style.faint('name')}  ${style.strong(readable(name))}`]
  if (tag !== undefined) lines.push(`${style.faint('tag')}   ${readable(tag)}`)
  return lines.map((line) => `${line}\n`).join('')
}
