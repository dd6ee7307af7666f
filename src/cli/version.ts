import { version } from '../../package.json'
import { writeAnswer } from '../output/output.js'
import { toJson } from '../plant/json.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { parseOutput } from '../platform/values.js'
import { describeSqlite } from '../stores/registry.js'
import { outputFlag } from './output-flag.js'

/** Prints the version; with `--output json` also of what the program runs on. */
export async function writeVersion(argv: string[], io: Io): Promise<void> {
  const asked = outputFlag(argv)
  const isJson = asked !== undefined && parseOutput('--output', asked) === 'json'
  await writeAnswer(io, isJson ? `${toJson({ version, ...(await platform()) })}\n` : `${version}\n`, 'Run it again')
}

async function platform() {
  const [runtime, number] = 'bun' in process.versions ? ['bun', process.versions['bun']] : ['node', process.versions.node]
  const sqlite = await describeSqlite().catch(withoutSqlite)
  return {
    runtime: `${runtime} ${number}`,
    sqlite: sqlite?.version,
    driver: sqlite?.driver,
    platform: `${process.platform}-${process.arch}`,
  }
}

/** A version has to be told also where no store can be opened. */
function withoutSqlite(error: unknown): undefined {
  if (!(error instanceof PlantsError)) throw error
}
