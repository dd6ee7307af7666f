import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A plugin that writes the licences of the bundled packages beside the bundle: THIRD-PARTY.txt. */
export const thirdPartyNotices = {
  name: 'third-party-notices',
  generateBundle(_, bundle) {
    const notices = foldersIn(bundle).map(noticeOf)
    const sorted = [...new Set(notices)].toSorted() // The same version may be there in two folders.
    const source = ['plant-store contains code of these packages.\n', ...sorted].join('\n')
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source })
  },
}

/** The folders of the packages of which code is in a bundle. */
function foldersIn(bundle) {
  const chunks = Object.values(bundle).filter(({ type }) => type === 'chunk')
  const modules = chunks.flatMap((chunk) => Object.entries(chunk.modules))
  const ids = modules.filter(([, { renderedLength }]) => renderedLength > 0).map(([id]) => id)
  return [...new Set(ids.flatMap((id) => packageFolder.exec(id)?.[0] ?? []))]
}

const packageFolder = /.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (typeof license !== 'string')
    throw new Error(`${name} ${version} names no licence in its package.json`)
  const texts = licencesIn(folder).map((text) => text.trim())
  if (texts.length === 0)
    texts.push(`The package ${name} carries no text of its licence, which it names as ${license}.`)
  return `${rule}\n${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`
}

const rule = '-'.repeat(80)

/** Files of their own, or what a README has under "License", if that is more than a name. */
function licencesIn(folder) {
  const read = (file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
  const names = readdirSync(folder)
  const files = names.filter((name) => /^(licen[cs]e|copying|notice)/i.test(name))
  if (files.length > 0) return files.map(read)
  const readmes = names.filter((name) => /^readme/i.test(name)).map(read)
  return readmes
    .flatMap((readme) => readme.split(/^#+ */m))
    .filter((section) => /^licen[cs]e\b.*(permission|redistribution)/is.test(section))
    .map((section) => section.replace(/^.*/, ''))
}
