import { version as ownVersion } from '../../../package.json'
import { writeAnswer } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import { PlantsError } from '../../platform/errors.js'
import { commonFormats, parseOutput } from '../../platform/values.js'
import { defineCommand } from '../define-command.js'

export const version = defineCommand({
  name: 'version',
  description: 'Show the version; with --output json also the runtime, the SQLite driver and the platform.',
  examples: ['plants version', 'plants version --output json'],
  async run({ flags: { output } }, io) {
    if (output === undefined || parseOutput('--output', output, commonFormats) === 'text')
      return writeAnswer(io, `${ownVersion}\n`)
    const { bun, node } = process.versions
    const driver = import('../../platform/sqlite.js').then(({ describeDriver }) => describeDriver())
    const sqlite = await driver.catch((error: unknown) => {
      if (!(error instanceof PlantsError)) throw error // the version is printed even if SQLite cannot be loaded
    })
    const platform = `${process.platform}-${process.arch}`
    const runtime = bun === undefined ? `node ${node}` : `bun ${bun}`
    const fields = { version: ownVersion, runtime, sqlite: sqlite?.version, driver: sqlite?.driver, platform }
    await writeAnswer(io, `${toJson(fields)}\n`)
  },
})
