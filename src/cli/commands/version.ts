import { version as ownVersion } from '../../../package.json'
import { commonFormats, parseOutput } from '../../config/option-values.js'
import { writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'

export function define(command: PlantsCommand): void {
  command
    .description('Show the version; with --output json also the runtime and SQLite.')
    .addExamples('plants version', 'plants version --output json')
    .handler(version)
}

/** Works with invalid settings, which a report of a bug may be about. */
async function version({ output }: GlobalOptions, io: Io): Promise<void> {
  if (output === undefined || parseOutput('--output', output, commonFormats) === 'text')
    return writeAnswer(io, `${ownVersion}\n`)
  const driver = import('../../platform/sqlite.js').then(({ describeDriver }) => describeDriver())
  const sqlite = await driver.catch((error: unknown) => {
    if (!(error instanceof PlantsError)) throw error // the version is printed even if SQLite cannot be loaded
  })
  const fields = {
    version: ownVersion,
    runtime: runtimeName(),
    sqlite: sqlite?.version,
    driver: sqlite?.driver,
    platform: `${process.platform}-${process.arch}`,
  }
  await writeAnswer(io, `${toJson(fields)}\n`)
}

export function runtimeName(): string {
  const { bun, node } = process.versions
  return bun === undefined ? `node ${node}` : `bun ${bun}`
}
