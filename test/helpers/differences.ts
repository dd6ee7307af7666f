import { spawnSync } from 'node:child_process'
import { bin } from './process.js'

/** Whether the program under test is the single file, or another that runs on Bun. */
export const isSingleFile = / on Bun /.test(
  spawnSync(bin, ['doctor', '--output', 'ndjson'], { env: { PATH: process.env['PATH'] } }).stdout.toString(),
)

/** What the program under test responds (status, `error`), by request; the package and the single file differ there. */
export const differences = ofProgram({
  'POST *': ['404, 404', '400, 400'],
  'OPTIONS *': ['404, 404', '400, 400'],
  'POST ftp://plants.example/plants': ['404, 404', '400, 400'],
  'GET /openapi.json HTTP/2.0': ['400, 400', '400, 400'],
  'GET /openapi.json, as HTTP/0.9 has it': ['408, 408', '400, 400'],
  'POST /plants with two spaces': ['400, 401', '400, 400'],
  'POST /plants RTSP/1.0': ['400, 401', '400, 400'],
  'a chunk extension in quotes, with a space': ['400, 400', '400, 400'],
  'Transfer-Encoding: chunked and a tab': ['400, 400', '400, 400'],
})

/** With which code a `plants list` ends, by what is odd around it. */
export const oddSurroundings = ofProgram({
  'the current directory is gone': ['0', '1'],
  'no /proc on Linux': ['0', '134 or 4'],
})

function ofProgram(table: Record<string, [ofPackage: string, ofSingleFile: string]>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(table).map(([name, [ofPackage, ofSingleFile]]) => [name, isSingleFile ? ofSingleFile : ofPackage]),
  )
}

/** Whether a test of such a request is for the package alone. */
export function differs(request: string): boolean {
  return isSingleFile && differences.has(request)
}
