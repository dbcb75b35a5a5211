//! Plausible rows of several kinds of study, made up by formula: for tests of what is drawn and
//! tabulated from rows, never for a statement about attention.

use std::fs;
use std::path::Path;

const FITS: &str = "study,cell,family,window,tau,alpha,sigma,k,m,lambda,local,global,target,n,rank,\
layout,seed,cap,kl_nats,max_abs_logit,logit_spread,norm_product,floor_kl_nats,floor_max_abs_logit,\
inflation,outcome,iterations,evaluations,wall_time_s,factors,tolerance,visibility,gradient_norm,err";

/// A number in [−1, 1) that depends on the arguments only.
fn noise(a: usize, b: usize, c: usize) -> f64 {
    let mut state = (a as u64) << 40 ^ (b as u64) << 20 ^ c as u64 ^ 0x9E37_79B9_7F4A_7C15;
    for _ in 0..4 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// The fields of one row of a study of fits, by name; the rest stay empty.
fn row(fields: &[(&str, String)]) -> String {
    let values: Vec<&str> = FITS
        .split(',')
        .map(|name| fields.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value))
        .collect();
    values.join(",") + "\n"
}

/// Writes rows of L*(0.05): `dirichlet-band` grows with n/d and runs out of caps, `landmark` does
/// not grow, `random-sparse` grows too.
pub fn logit_growth(study: &Path) {
    let mut text = format!("{FITS}\n");
    for (family, parameter, value, power, base) in [
        ("dirichlet-band", "window", "32", 0.55, 0.75),
        ("landmark", "m", "8", 0.02, 1.02),
        ("random-sparse", "k", "8", 0.35, 1.0),
    ] {
        for n in [64usize, 128, 256] {
            for rank in [4usize, 8, 16, 32] {
                for seed in 0..3usize {
                    let ratio = n as f64 / rank as f64;
                    let floor = 0.5 * (n as f64 / 1.6).ln() + 2.0 + 0.1 * noise(n, seed, 3);
                    let wobble = 0.06 * noise(n * rank, seed, family.len());
                    let inflation = (base * ratio.powf(power)).max(1.0) * (1.0 + wobble.abs());
                    let infeasible = family == "dirichlet-band" && ratio + 4.0 * wobble > 31.9;
                    let needed = if infeasible { 64.0 } else { floor * inflation };
                    let mut fields = vec![
                        ("study", "logit-growth".to_owned()),
                        ("cell", format!("{family}/n{n}-d{rank}-s{seed}")),
                        ("family", family.to_owned()),
                        (parameter, value.to_owned()),
                        ("n", n.to_string()),
                        ("rank", rank.to_string()),
                        ("layout", "global".to_owned()),
                        ("seed", seed.to_string()),
                        ("kl_nats", if infeasible { "0.11" } else { "0.0499" }.to_owned()),
                        ("max_abs_logit", needed.to_string()),
                        ("floor_max_abs_logit", floor.to_string()),
                        ("outcome", if infeasible { "infeasible" } else { "converged" }.to_owned()),
                        ("tolerance", "0.05".to_owned()),
                        ("visibility", "causal".to_owned()),
                    ];
                    if !infeasible {
                        fields.push(("inflation", inflation.to_string()));
                    }
                    text.push_str(&row(&fields));
                }
            }
        }
    }
    text.push_str(&row(&[
        ("cell", "landmark/n64-d4-s9".to_owned()),
        ("family", "landmark".to_owned()),
        ("m", "8".to_owned()),
        ("n", "64".to_owned()),
        ("rank", "4".to_owned()),
        ("layout", "global".to_owned()),
        ("tolerance", "0.05".to_owned()),
        ("err", "the target could not be built".to_owned()),
    ]));
    fs::create_dir_all(study).unwrap();
    fs::write(study.join("rows.csv"), text).unwrap();
}

/// Writes rows of three layouts under five caps, in the order that a first look found: one global
/// head of rank 16 best, a local and a global one of rank 8 next, two global ones of rank 8 worst.
pub fn layouts(study: &Path) {
    let mut text = format!("{FITS}\n");
    for (layout, rank, floor_at, scale) in [
        ("global", 16, 0.0015, 0.9),
        ("2xglobal", 8, 0.056, 1.1),
        ("local:24+global", 8, 0.017, 0.5),
    ] {
        for cap in [2usize, 4, 8, 16, 32] {
            for seed in 0..3usize {
                let full = 1.2 * (-(cap as f64) / 1.4).exp() + 2e-5;
                let spread = 1.0 + 0.12 * noise(cap, rank + layout.len(), seed);
                let kl = (floor_at + scale * (-(cap as f64) / 2.0).exp()) * spread;
                text.push_str(&row(&[
                    ("study", "layouts".to_owned()),
                    ("cell", format!("mixture/{layout}-d{rank}-s{seed}")),
                    ("family", "mixture".to_owned()),
                    ("lambda", "0.5".to_owned()),
                    ("local", "dirichlet-band".to_owned()),
                    ("global", "landmark".to_owned()),
                    ("n", "160".to_owned()),
                    ("rank", rank.to_string()),
                    ("layout", layout.to_owned()),
                    ("seed", seed.to_string()),
                    ("cap", cap.to_string()),
                    ("kl_nats", kl.to_string()),
                    ("max_abs_logit", cap.to_string()),
                    ("floor_kl_nats", full.to_string()),
                    ("outcome", "converged".to_owned()),
                ]));
            }
        }
    }
    fs::create_dir_all(study).unwrap();
    fs::write(study.join("rows.csv"), text).unwrap();
}

/// Writes the rows and logs of one seed of `mhsa` and of `ls`.
pub fn lm_quick(study: &Path) {
    let mut text =
        "study,cell,run,arm,seed,corpus,layers,d_model,heads,global_heads,window,context,\
                    batch,steps,learning_rate,parameters,train_loss_nats,valid_loss_nats,\
                    max_abs_logit,outcome,wall_time_s,peak_max_abs_logit,err\n"
            .to_owned();
    let name = study.file_name().unwrap().to_string_lossy();
    for (arm, last, logit) in [("mhsa", 2.39, 61.0), ("ls", 1.89, 12.0)] {
        let folder = study.join(arm).join("s0");
        fs::create_dir_all(&folder).unwrap();
        training_logs(&folder, arm, last, logit);
        text.push_str(&format!(
            "{name},{arm}/s0,{arm},{arm},0,shakespeare,3,64,4,1,16,512,4,1500,0.003,165000,{last},\
             {last},{logit},completed,61.5,{logit},\n"
        ));
    }
    fs::write(study.join("rows.csv"), text).unwrap();
}

/// A curve of 100 stretches of 15 steps, and evaluations.
fn training_logs(folder: &Path, arm: &str, last: f64, logit: f64) {
    let loss = |step: f64| last + (4.2 - last) * (-step / 190.0).exp();
    let mut curve = "step,tokens,wall_time_s,loss_nats,grad_norm,max_abs_logit,\
                     max_abs_logit_global,max_abs_logit_local\n"
        .to_owned();
    let mut evals = "step,split,tokens,loss_nats,perplexity\n".to_owned();
    for step in (15..=1500usize).step_by(15) {
        let at = step as f64;
        let now = loss(at) + 0.02 * noise(step, arm.len(), 1);
        let grown = logit * (1.0 - (-at / 500.0).exp()).powf(0.6);
        let grown = grown * (1.0 + 0.04 * noise(step, arm.len(), 2));
        let local = if arm == "ls" { (0.8 * grown).to_string() } else { String::new() };
        let (tokens, time) = (step * 2048, 0.04 * at);
        curve.push_str(&format!("{step},{tokens},{time},{now},0.9,{grown},{grown},{local}\n"));
        if step % 250 == 0 {
            let valid = loss(at) + 0.03;
            evals.push_str(&format!("{step},valid,20480,{valid},{}\n", valid.exp()));
        }
    }
    fs::write(folder.join("curve.csv"), curve).unwrap();
    fs::write(folder.join("eval.csv"), evals).unwrap();
}
