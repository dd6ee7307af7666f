import type { Command } from 'commander'
import { parseBasePath } from '../flags.js'
import type { Io } from '../io.js'
import { writeAnswer } from '../output.js'

export function defineOpenapi(program: Command, io: Io): void {
  program
    .command('openapi')
    .summary('print the description of the HTTP interface')
    .description('Print what plants serve answers at /openapi.json: the description of its interface, OpenAPI 3.1.')
    .option('--base-path <path>', 'what stands before /plants, such as /v1')
    .addHelpText('after', '\nExample:\n  plants openapi > openapi.json\n')
    .action(async ({ basePath }: { basePath?: string }) => {
      const { openApi } = await import('../service/openapi.js')
      await writeAnswer(io, `${openApi(parseBasePath('--base-path', basePath))}\n`, 'Run it again')
    })
}
