import { createReadStream, createWriteStream, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { writeResult } from '../../output/output.js'
import { plantCount } from '../../plant/plant.js'
import { unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { withLockedTempDir } from '../../platform/locked-temp-dir.js'
import { parseText } from '../../platform/values.js'
import { fileOf, noStore } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import { defineCommand, dryRunOption } from '../define-command.js'

export const backup = defineCommand({
  name: 'backup',
  description:
    'Copy a consistent snapshot of the store to a file. The copy is verified before it replaces an older backup. Others can use the store in the meantime.',
  arguments: [
    {
      name: '<file>',
      description: 'file to write, "-" for stdout; an older backup is replaced',
      values: 'file',
      parse: parseText,
    },
  ],
  examples: [
    'plants backup plants.bak',
    'plants backup "plants-$(date +%F).bak" --store ./garden.db',
    'plants backup - | gzip > plants.bak.gz',
  ],
  async run({ args: [path], flags }, io) {
    const settings = await resolveSettings(flags, io)
    const store = fileOf(settings.store, 'Use pg_dump, or write its plants to a file: plants export --out FILE')
    const copyTo = async (file: string) => {
      const { backUp } = await import('../../stores/sqlite/store-backup.js')
      const copy = await backUp(store, file, settings.storeOptions)
      if (!copy) throw noStore(store)
      return copy
    }
    if (path === '-') {
      const pipe = `plants backup -${settings.storeFlag} | gzip > plants.bak.gz`
      if (io.stdout.isTerminal) throw malformed('A backup is not written to a terminal', `Pipe it: ${pipe}`)
      return inTempFile(io, async (file) => {
        await copyTo(file)
        const written = pipeline(createReadStream(file), io.stdout.stream(), { end: false, signal: io.signal })
        await written.catch((error: unknown) => {
          io.signal.throwIfAborted()
          throw systemCode(error) === 'EPIPE' ? error : unwritable('The backup on stdout', error, 'Run it again')
        })
      })
    }
    const file = io.resolvePath(path)
    const { plants, bytes } = await copyTo(file)
    const sentence = `Backed up ${plantCount(plants)} from ${escapeControlChars(store.name)} to ${escapeControlChars(file)}`
    await writeResult(io, settings, { file, plants, bytes }, sentence)
  },
})

export const restore = defineCommand({
  name: 'restore',
  description:
    'Replace the contents of the store with a backup. The previous contents are kept in a file beside the store. Others can use the store in the meantime, and see the change at once.',
  arguments: [
    { name: '<file>', description: 'file that plants backup created, "-" for stdin', values: 'file', parse: parseText },
  ],
  options: [
    dryRunOption('check the backup and count its plants, but restore nothing'),
    { flags: '-y, --yes', description: 'replace the plants in the store' },
  ],
  examples: [
    'plants restore plants.bak --store ./new.db',
    'plants restore plants.bak --yes',
    'gunzip -c plants.bak.gz | plants restore - --store ./new.db',
  ],
  async run({ args: [path], flags }, io) {
    const settings = await resolveSettings(flags, io)
    const instead = 'Use pg_restore, or create the plants of a store in it: plants export --store FILE | plants import'
    const address = fileOf(settings.store, instead)
    const { name } = address
    const isPiped = path === '-'
    if (isPiped && io.stdin.isTerminal)
      throw malformed('A backup is not read from a terminal', 'Use a file, or pipe a backup to stdin')
    const file = isPiped ? path : io.resolvePath(path)
    const source = isPiped ? 'stdin' : file
    const restoreFrom = async (from: string, force = flags.yes === true) => {
      const { restoreStore } = await import('../../stores/sqlite/store-backup.js')
      const options = { ...settings.storeOptions, at: new Date(io.time()), isDryRun: flags.dryRun === true, force }
      try {
        return await restoreStore(address, from, options)
      } catch (error) {
        if (!(error instanceof PlantsError)) throw error
        const { type, message } = error
        if (type !== 'conflict')
          throw new PlantsError(type, message.replaceAll(from, source), { ...error, cause: error })
        if (!settings.mayAsk()) throw malformed(message, error.hint, error)
        const { askToConfirm } = await import('../prompts.js')
        const question = `${escapeControlChars(message)}. Replace it, and keep a copy beside it?`
        await askToConfirm(question, 'Nothing was restored', settings.colors(io.stderr), io)
        return restoreFrom(from, true)
      }
    }
    const { plants, kept } = isPiped
      ? await inTempFile(io, async (copy) => {
          const stream = createWriteStream(copy, { flags: 'wx', mode: 0o600 })
          await pipeline(io.stdin.stream(), stream, { signal: io.signal })
          return restoreFrom(copy)
        })
      : await restoreFrom(file)
    const what = `${plantCount(plants)} from ${escapeControlChars(source)} to ${escapeControlChars(name)}`
    if (flags.dryRun) {
      const fields = { dryRun: true, file, store: name, plants }
      return writeResult(io, { output: settings.output }, fields, `Would restore ${what}`, 'Nothing was restored')
    }
    const rest = kept === undefined ? '' : `; the previous contents are kept in ${escapeControlChars(kept)}`
    await writeResult(io, settings, { file, store: name, plants, kept }, `Restored ${what}${rest}`)
  },
})

/** For a backup that is read from a pipe or written to one. */
async function inTempFile<T>(io: Io, action: (file: string) => Promise<T>): Promise<T> {
  try {
    return await withLockedTempDir(join(realpathSync(tmpdir()), 'backup'), 'plants.bak', action)
  } catch (error) {
    io.signal.throwIfAborted()
    if (systemCode(error) === 'EPIPE') throw error
    throw unwritable('The backup', error, 'Free some space, or set TMPDIR to another directory')
  }
}
